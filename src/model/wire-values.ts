/** A provider's unchecked data: every field may be missing or of another type. */
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

/** A string, or the joined text of the parts of one type. */
export function wireParts(value: unknown, type: string, field: string): string {
  if (typeof value === "string") return value;
  let text = "";
  for (const entry of wireArray(value)) {
    const part = wireObject(entry);
    if (part?.["type"] === type) text += wireParts(part[field], "text", "text");
  }
  return text;
}

export function isJsonObject(text: string): boolean {
  return wireObject(wireJson(text)) !== undefined;
}

/** The value of a JSON text; `undefined` if the text is not valid JSON. */
export function wireJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
