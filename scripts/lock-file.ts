export interface LockedPackage {
  readonly version?: string;
  readonly dev?: boolean;
  readonly optional?: boolean;
  readonly os?: readonly string[];
  readonly cpu?: readonly string[];
  readonly libc?: readonly string[];
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

export interface Lock {
  readonly packages: Readonly<Record<string, LockedPackage>>;
}

const operatingSystems: readonly string[] = ["aix", "android", "darwin", "freebsd", "linux", "openharmony", "win32"];
const processors: readonly string[] = ["arm", "arm64", "ia32", "ppc64", "riscv64", "s390x", "wasm32", "x64"];

/** The platform in a package's name: "binding-linux-arm64-musl" runs on linux, arm64, with musl. */
function platformOf(name: string): Pick<LockedPackage, "os" | "cpu" | "libc"> {
  const words = name.split(/[/-]/);
  const os = words.filter((word) => operatingSystems.includes(word));
  const cpu = words.filter((word) => processors.includes(word));
  const linux = os.includes("linux");
  const libc = words.flatMap((word) =>
    linux && word.startsWith("gnu") ? ["glibc"] : linux && word.startsWith("musl") ? ["musl"] : [],
  );
  return { ...(cpu.length > 0 && { cpu }), ...(libc.length > 0 && { libc }), ...(os.length > 0 && { os }) };
}

/** Adds the missing entries of optional dependencies with exact versions to a lock. */
export function completeLock(lock: Lock): { readonly completed: Lock; readonly added: readonly string[] } {
  const packages = new Map(Object.entries(lock.packages));
  const added: string[] = [];
  for (const [parent, { dev, optionalDependencies = {} }] of Object.entries(lock.packages)) {
    for (const [name, version] of Object.entries(optionalDependencies)) {
      const isLocked = packages.has(`node_modules/${name}`) || packages.has(`${parent}/node_modules/${name}`);
      if (isLocked || !/^\d/.test(version)) continue;
      packages.set(`node_modules/${name}`, {
        version,
        ...platformOf(name),
        ...(dev === true && { dev }),
        optional: true,
      });
      added.push(`${name}@${version}`);
    }
  }
  const sorted = [...packages].sort(([left], [right]) => (left < right ? -1 : 1));
  return { completed: { ...lock, packages: Object.fromEntries(sorted) }, added };
}
