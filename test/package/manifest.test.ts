import { expect, test } from "vitest";
import { readManifest } from "../../scripts/manifest.ts";

/** The scripts that npm runs, or warns about, in a project that installs the package. */
const installScripts = ["preinstall", "install", "postinstall", "prepublish", "preprepare", "prepare", "postprepare"];

test("the package runs no script at installation, and is built by packing", () => {
  const { scripts } = readManifest();
  expect(Object.keys(scripts).filter((name) => installScripts.includes(name))).toEqual([]);
  expect(scripts["prepack"]).toBe("node scripts/build.ts");
});
