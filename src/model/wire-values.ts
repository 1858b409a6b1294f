/** What a provider sent, before anyone looked at it: every field may be missing or of another type. */
export type WireObject = Readonly<Record<string, unknown>>;

export function wireObject(value: unknown): WireObject | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as WireObject) : undefined;
}

export function wireArray(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function wireText(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** Text that is a string, or a list of parts of which those of one type are taken. */
export function wireParts(value: unknown, type: string, field: string): string {
  if (typeof value === "string") return value;
  let text = "";
  for (const entry of wireArray(value)) {
    const part = wireObject(entry);
    if (part?.["type"] === type) text += wireParts(part[field], "text", "text");
  }
  return text;
}
