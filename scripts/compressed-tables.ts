import { pathToFileURL } from "node:url";
import { isDeepStrictEqual } from "node:util";
import { brotliCompressSync, constants } from "node:zlib";
import type { Plugin } from "rolldown";

/** A module of a package that is larger than this many bytes and gives a table is kept compressed. */
const largestPlainTable = 1_000_000;

/**
 * Keeps the tokenizer's table as Brotli bytes, in 0.4 of its own. They are a text in the module and no file beside it, so that
 * bundlers of users take them along.
 */
export const compressedTables: Plugin = {
  name: "compressed-tables",
  transform: {
    filter: { id: /[\\/]node_modules[\\/]gpt-tokenizer[\\/]/ },
    handler: async (code, id) =>
      code.length > largestPlainTable ? { code: await compressed(id), map: null } : undefined,
  },
};

/** A module with the same default export, which has to be plain JSON. */
async function compressed(file: string): Promise<string> {
  const { default: table } = (await import(pathToFileURL(file).href)) as { readonly default: unknown };
  const json = JSON.stringify(table);
  if (!isDeepStrictEqual(JSON.parse(json), table)) throw new Error(`${file} gives a table that is no JSON.`);
  // A higher quality takes ten times as long for 6 % less.
  const params = { [constants.BROTLI_PARAM_QUALITY]: 9, [constants.BROTLI_PARAM_LGWIN]: 24 };
  const bytes = brotliCompressSync(json, { params }).toString("base64");
  return `import { Buffer } from "node:buffer";
import { brotliDecompressSync } from "node:zlib";
const bytes = Buffer.from("${bytes}", "base64");
export default JSON.parse(brotliDecompressSync(bytes).toString());
`;
}
