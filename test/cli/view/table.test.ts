import { expect, test } from "vitest";
import { tableLines } from "../../../src/cli/view/table.ts";

test("columns are as wide as their widest cell, figures to the right, and no line ends with spaces", () => {
  const columns = [{ title: "NAME" }, { title: "N", align: "right" as const }, { title: "NOTE", maxWidth: 5 }];
  const lines = tableLines(columns, [
    ["日本", "7", "a long note"],
    ["x", "1234", "a\nb"],
    ["y", "1"],
  ]);
  expect(lines).toEqual(["NAME     N  NOTE", "日本     7  a lo…", "x     1234  a b", "y        1"]);
});
