import { describe, expect, test } from "vitest";
import { providerTables } from "./capabilities.ts";
import { conversationsContract } from "./conversations.contract.ts";
import { modelFamilies } from "./families.ts";
import { modelContract } from "./model.contract.ts";

describe.each(modelFamilies)("$name", (family) => {
  modelContract(family);
});
describe("conversations", () => {
  conversationsContract(modelFamilies);
});

test("docs/providers.md has what was measured here (npm run build:providers)", () => {
  const { shown, measured } = providerTables();
  expect(shown).toBe(measured);
});
