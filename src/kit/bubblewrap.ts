import { spawnSync } from "node:child_process";
import { lstatSync, readlinkSync, realpathSync } from "node:fs";
import { resolve } from "node:path";
import { flagRule, listRule, nameRule, optionsOf } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import { existingFolder } from "./folder.ts";

/** Options of `bubblewrap()`. */
export interface BubblewrapOptions {
  /** The folder in which commands may write: that of the workspace or the shell. A path or a `file:` URL. */
  readonly folder: string | URL;
  /** Further files and folders that commands can read, such as `/opt/tools`. They must exist. Default: none. */
  readonly read?: readonly string[] | undefined;
  /** Whether commands reach the network, and this machine through it. Default false. */
  readonly network?: boolean | undefined;
}

/** Folders of the system beside `/usr`; in many distributions they are links into it. */
const system = ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];
/** What programs need of `/etc`: libraries, alternatives, certificates and time. None of it is secret. */
const settings = ["ld.so.cache", "alternatives", "ssl", "pki", "ca-certificates", "localtime"].map(
  (name) => `/etc/${name}`,
);
const netSettings = ["/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf"];
/** How long the trial may take, in milliseconds. */
const TRIAL_MS = 10_000;

/**
 * The program and arguments of a sandbox for `wrap` of `shell()`, by Bubblewrap on Linux: commands see the system read-only, `folder` to
 * read and write under its own path, an empty `/tmp`, and no home, other process or network. They have no capabilities, also if this
 * process runs as root, and end with this process. Throws `InvalidInputError` for invalid options, and if `bwrap` is missing or this
 * machine does not let it make a sandbox, which is tried once.
 */
export function bubblewrap(given: BubblewrapOptions): readonly string[] {
  const options = optionsOf<BubblewrapOptions>(given, "bubblewrap()", {
    rules: {
      folder: (value) => existingFolder(value, "bubblewrap()"),
      read: listRule("a list of paths", nameRule),
      network: flagRule,
    },
    needed: ["folder"],
    instead: { path: "folder", workspace: "folder", write: "folder", net: "network", readOnly: "read" },
  });
  const { read = [], network = false } = options;
  const folder = realpathSync(options.folder);
  if (folder === "/")
    throw new InvalidInputError("bubblewrap(): folder is the root of this machine; give a folder of its own");
  const words = [
    "bwrap",
    "--unshare-all",
    ...(network ? ["--share-net"] : []),
    // Without them root could make the system writable again.
    "--cap-drop",
    "ALL",
    "--die-with-parent",
    "--new-session",
    "--ro-bind",
    "/usr",
    "/usr",
    ...system.flatMap(systemFolder),
    ...[...settings, ...(network ? netSettings : [])].flatMap((path) => ["--ro-bind-try", path, path]),
    "--proc",
    "/proc",
    "--dev",
    "/dev",
    "--tmpfs",
    "/tmp",
    "--setenv",
    "HOME",
    "/tmp",
    ...read.map((path) => existing(path)).flatMap((path) => ["--ro-bind", path, path]),
    "--bind",
    folder,
    folder,
  ];
  tryOnce(words, folder);
  return Object.freeze(words);
}

function systemFolder(path: string): readonly string[] {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (!stats) return [];
  return stats.isSymbolicLink() ? ["--symlink", readlinkSync(path), path] : ["--ro-bind", path, path];
}

function existing(path: string): string {
  const absolute = resolve(path);
  if (!path.includes("\0") && lstatSync(absolute, { throwIfNoEntry: false })) return absolute;
  throw new InvalidInputError(`bubblewrap(): read has ${JSON.stringify(path)}, which does not exist`);
}

/** An error here is clearer than one of each command. */
function tryOnce(words: readonly string[], folder: string): void {
  const [program = "", ...args] = words;
  const trial = spawnSync(program, [...args, "/bin/sh", "-c", ":"], {
    cwd: folder,
    encoding: "utf8",
    timeout: TRIAL_MS,
  });
  if (trial.status === 0) return;
  const isMissing = trial.error !== undefined && "code" in trial.error && trial.error.code === "ENOENT";
  if (isMissing) {
    throw new InvalidInputError(
      "bubblewrap(): the program bwrap is not in PATH; install it (on Debian and Ubuntu: apt-get install bubblewrap), or run commands in a container",
    );
  }
  const reason = trial.stderr?.trim() || trial.error?.message || `it ended with ${trial.signal ?? trial.status}`;
  throw new InvalidInputError(
    `bubblewrap(): this machine makes no sandbox: ${reason.slice(0, 500)}. It needs user namespaces, which containers and some distributions refuse; allow them, or run commands in a container`,
  );
}
