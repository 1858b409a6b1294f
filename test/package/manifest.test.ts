import { expect, test } from "vitest";
import { readManifest } from "../../scripts/manifest.ts";

/** The scripts that npm runs, or warns of, in a project that installs the package. */
const installScripts = ["preinstall", "install", "postinstall", "prepublish", "preprepare", "prepare", "postprepare"];

test("nothing of the package runs where it is installed; packing builds it", () => {
  const { scripts } = readManifest();
  expect(Object.keys(scripts).filter((name) => installScripts.includes(name))).toEqual([]);
  expect(scripts["prepack"]).toBe("node scripts/build.ts");
});
