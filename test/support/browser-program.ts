import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import {
  createReadStream,
  createWriteStream,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { promisify } from "node:util";
import { createBrotliDecompress } from "node:zlib";
import { onceAMachine } from "./once-a-machine.ts";

const run = promisify(execFile);

/** The program and arguments that start Chromium on this machine. */
export interface BrowserProgram {
  readonly path: string;
  readonly environment: Readonly<Record<string, string>>;
}

interface PinnedPackage {
  readonly name: string;
  readonly version: string;
  /** The hash of its tarball, as in npm's lock file. */
  readonly integrity: string;
}

/** A headless Chromium for Linux x64 with the libraries that it needs. */
const chromium: PinnedPackage = {
  name: "@sparticuz/chromium",
  version: "153.0.0",
  integrity: "sha512-jiGWqSvPMdu4+P9TilYqAR7yEGPEHINx+lCvE/NqNO/EHYzF/x1hUiI5T6ioVIt7dEy7n88byyT0vk+dnsgQwA==",
};
/** Chromium contains only Open Sans, which has no arrows and no fixed width. */
const fonts: PinnedPackage = {
  name: "dejavu-fonts-ttf",
  version: "2.37.3",
  integrity: "sha512-f1hd7jJbeQa1VWcw+K2KrTXS50zTMaHpVC4XIKJpNcDeYR5ajMtj/iLlQDYNvLOKamUB3ARVVCf79lNwNVztSQ==",
};

const VARIABLE = "TROUPE_CHROMIUM";
const cache = join(tmpdir(), `troupe-browser-${process.getuid?.() ?? "user"}`);
const root = join(cache, `${chromium.version}-${fonts.version}`);

/** The fonts of this machine are excluded, so that texts are equally wide everywhere. */
const fontSettings = `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>${root}/fonts</dir>
  <dir>${root}/dejavu</dir>
  <cachedir>${root}/font-cache</cachedir>
  <alias binding="same"><family>sans-serif</family><prefer><family>Open Sans</family></prefer></alias>
  <alias binding="same"><family>system-ui</family><prefer><family>Open Sans</family></prefer></alias>
  <alias binding="same"><family>monospace</family><prefer><family>DejaVu Sans Mono</family></prefer></alias>
</fontconfig>
`;

/**
 * The Chromium in `TROUPE_CHROMIUM`; otherwise one that npm fetches, unpacked into a folder of the temporary
 * directory, once per machine. Nothing is installed. `undefined`, with a printed hint, if none can be fetched here;
 * on Linux x64 with glibc, where one can be fetched, a failure throws.
 */
export async function findBrowser(): Promise<BrowserProgram | undefined> {
  const own = process.env[VARIABLE];
  if (own !== undefined && own !== "") {
    if (!existsSync(own)) throw new Error(`${VARIABLE} names ${own}, which does not exist`);
    return { path: own, environment: {} };
  }
  if (!isLinuxWithGlibc()) {
    const system = `${process.platform} ${process.arch}`;
    const here = system === "linux x64" ? "Linux without glibc" : system;
    process.stderr.write(
      `A Chromium for ${here} cannot be fetched. Install Chromium or Chrome and set ${VARIABLE} to the path of its program; the tests that need a browser are skipped.\n`,
    );
    return undefined;
  }
  const path = join(root, "chromium");
  try {
    await onceAMachine(cache, () => existsSync(path), unpack);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message.trim() : String(cause);
    throw new Error(
      `Chromium could not be fetched with "npm pack ${chromium.name}@${chromium.version}". Set ${VARIABLE} to the path of an installed Chromium or Chrome, or let npm reach its registry. ${why}`,
      { cause },
    );
  }
  return {
    path,
    environment: { LD_LIBRARY_PATH: join(root, "lib"), FONTCONFIG_FILE: join(root, "fonts.conf") },
  };
}

function isLinuxWithGlibc(): boolean {
  if (process.platform !== "linux" || process.arch !== "x64") return false;
  // Without this the report resolves the names of all peers.
  Object.assign(process.report, { excludeNetwork: true });
  const { header } = process.report.getReport() as { readonly header: { readonly glibcVersionRuntime?: string } };
  return header.glibcVersionRuntime !== undefined;
}

/** Unpacks the browser instead of the package's own code, which needs more packages and unpacks some files on one cloud only. */
async function unpack(): Promise<void> {
  const folder = mkdtempSync(join(cache, "unpacking-"));
  try {
    const [browser, dejavu] = await Promise.all([fetched(chromium, folder), fetched(fonts, folder)]);
    renameSync(join(dejavu, "ttf"), join(folder, "dejavu"));
    await Promise.all([
      decompress(join(browser, "bin/chromium.br"), join(folder, "chromium")),
      ...["al2023", "fonts"].map(async (name) => {
        const archive = join(folder, `${name}.tar`);
        await decompress(join(browser, "bin", `${name}.tar.br`), archive);
        await run("tar", ["-xf", archive, "-C", folder, "--no-same-owner"]);
        rmSync(archive);
      }),
    ]);
    for (const left of [browser, dejavu]) rmSync(dirname(left), { recursive: true });
    writeFileSync(join(folder, "fonts.conf"), fontSettings);
    if (!existsSync(root)) renameSync(folder, root);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The folder of a package, from npm's configured registry. */
async function fetched({ name, version, integrity }: PinnedPackage, folder: string): Promise<string> {
  const place = mkdtempSync(join(folder, "package-"));
  const args = ["pack", `${name}@${version}`, "--json", "--ignore-scripts", "--pack-destination", place];
  const { stdout } = await run("npm", args, { cwd: place });
  const [packed] = JSON.parse(stdout) as readonly [{ readonly filename: string }];
  const archive = join(place, packed.filename);
  const found = `sha512-${createHash("sha512").update(readFileSync(archive)).digest("base64")}`;
  if (found !== integrity) throw new Error(`${name}@${version} has the integrity ${found}, not ${integrity}.`);
  const contents = join(place, "contents");
  mkdirSync(contents);
  await run("tar", ["-xzf", archive, "-C", contents, "--strip-components=1", "--no-same-owner"]);
  rmSync(archive);
  return contents;
}

async function decompress(source: string, target: string): Promise<void> {
  const chunkSize = 2 ** 21;
  await pipeline(
    createReadStream(source, { highWaterMark: chunkSize }),
    createBrotliDecompress({ chunkSize }),
    createWriteStream(target, { mode: 0o700 }),
  );
}
