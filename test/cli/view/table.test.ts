import { expect, test } from "vitest";
import { fitsTable, tableLines } from "../../../src/cli/view/table.ts";

test("columns are as wide as their widest cell, numbers align right, and no line ends with spaces", () => {
  const columns = [{ title: "NAME" }, { title: "N", align: "right" as const }, { title: "NOTE", maxWidth: 5 }];
  const lines = tableLines(columns, [
    ["日本", "7", "a long note"],
    ["x", "1234", "a\nb"],
    ["y", "1"],
  ]);
  expect(lines).toEqual(["NAME     N  NOTE", "日本     7  a lo…", "x     1234  a b", "y        1"]);
});

test("branches of a tree keep their spaces at every level", () => {
  const lines = tableLines(
    [{ title: "AGENT" }],
    [["lead"], ["├─ a"], ["│  └─ b\n c"], ["└─ d"], ["   ├─ e"], ["   │  "]],
  );
  expect(lines).toEqual(["AGENT", "lead", "├─ a", "│  └─ b c", "└─ d", "   ├─ e", "   │"]);
});

test("in a too wide table columns are left out by rank, and then cells are cut", () => {
  const columns = [
    { title: "NAME", minWidth: 4 },
    { title: "N", leaveOut: 2 },
    { title: "KIND", leaveOut: 1 },
    { title: "NOTE", minWidth: 6 },
  ];
  const rows = [["examiner", "7", "reader", "a long note"]];
  const rowAt = (width: number) => tableLines(columns, rows, width)[1];
  expect(rowAt(32)).toBe("examiner  7  reader  a long note");
  expect(rowAt(30)).toBe("examiner  7  reader  a long n…");
  expect(rowAt(20)).toBe("examiner  7  a long…");
  expect(rowAt(13)).toBe("exam…  a lon…");
  expect(fitsTable(columns, rows, 30)).toBe(true);
  expect(fitsTable(columns, rows, 12)).toBe(false);
});
