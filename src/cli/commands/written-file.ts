import { randomUUID } from "node:crypto";
import { access, constants, lstat, rename, rm, writeFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { describeFileError } from "../../base/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import type { CliContext } from "../cli-context.ts";

/** Checks the files before the run is read, which may take long. Throws `InvalidInputError`. */
export async function assertWritable({ directory }: CliContext, path: string, force: boolean): Promise<void> {
  const target = resolve(directory, path);
  const known = await lstat(target).catch(() => undefined);
  if (known?.isDirectory() === true) throw new InvalidInputError(`${path} is a folder; give the path of a file`);
  if (known && !force) throw new InvalidInputError(`${path} exists; give another file, or --force to overwrite it`);
  await access(dirname(target), constants.W_OK).catch((cause: unknown) => {
    throw new InvalidInputError(describeFileError(path, cause), { cause });
  });
}

/**
 * Writes the file atomically: a run may be larger than the disk. Only the process's owner may read it, because it
 * contains the agents' texts.
 */
export async function writePrivateFile(context: CliContext, path: string, content: string): Promise<void> {
  await replaceFile(context, { path, content, mode: 0o600 });
}

/** Writes the file atomically; everyone may read it. */
export async function writePublicFile(context: CliContext, path: string, content: string): Promise<void> {
  await replaceFile(context, { path, content, mode: 0o644 });
}

async function replaceFile(
  { directory }: CliContext,
  { path, content, mode }: { readonly path: string; readonly content: string; readonly mode: number },
): Promise<void> {
  const target = resolve(directory, path);
  const partial = `${target}.${randomUUID().slice(0, 8)}.partial`;
  try {
    await writeFile(partial, content, { flag: "wx", mode });
    await rename(partial, target);
  } catch (cause) {
    await rm(partial, { force: true });
    throw new InvalidInputError(describeFileError(path, cause), { cause });
  }
}
