import { isSecretName } from "../base/index.ts";

/** Where the values of a configuration's variables come from. */
export interface VariableSource {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Values of the names that editors define, such as `workspaceFolder`. */
  readonly predefined: Readonly<Record<string, string>>;
  /** The value of an input by its id; `undefined` if there is none. */
  input(id: string): string | undefined;
  /** Whether the value of an input may be shown. */
  isPlainInput(id: string): boolean;
}

/** A variable of a text that has no value. */
export interface MissingVariable {
  /** As in the text: `${TOKEN}`. */
  readonly text: string;
  readonly why: "unset" | "no input" | "unsupported";
}

export interface Expanded {
  readonly text: string;
  /** The variables that had a value. */
  readonly used: readonly { readonly name: string; readonly value: string; readonly isSecret: boolean }[];
  readonly missing: readonly MissingVariable[];
}

/**
 * `${NAME}`, `${NAME:-default}`, `${env:NAME}`, `${input:id}`, `${/}`, and the prefixes of editors that have no meaning here. Other
 * texts in braces, such as those of a shell, are not variables.
 */
const variable =
  /\$\{(?:(?<name>[A-Za-z_]\w*)(?::-(?<fallback>[^}]*))?|(?<kind>env|input|config|command):(?<id>[^}]+)|\/)\}/g;

/** Replaces the variables of a text once: the values themselves are not expanded. */
export function expandVariables(text: string, source: VariableSource): Expanded {
  const used: { name: string; value: string; isSecret: boolean }[] = [];
  const missing: MissingVariable[] = [];
  const expanded = text.replaceAll(variable, (whole, ...rest: unknown[]) => {
    const groups = rest.at(-1) as Readonly<Record<"name" | "fallback" | "kind" | "id", string | undefined>>;
    const { name, fallback, kind, id = "" } = groups;
    if (kind === "config" || kind === "command") {
      missing.push({ text: whole, why: "unsupported" });
      return whole;
    }
    const [asked, value] =
      kind === "input"
        ? [id, source.input(id)]
        : name === undefined && kind === undefined
          ? ["/", source.predefined["/"]]
          : [name ?? id, valueOf(name ?? id, source, kind) ?? fallback];
    if (value === undefined) {
      missing.push({ text: whole, why: kind === "input" ? "no input" : "unset" });
      return whole;
    }
    const isHidden = kind === "input" && !source.isPlainInput(asked);
    used.push({ name: asked, value, isSecret: isHidden || isSecretName(asked) || /key$/i.test(asked) });
    return value;
  });
  return { text: expanded, used, missing };
}

function valueOf(
  name: string,
  { environment, predefined }: VariableSource,
  kind: string | undefined,
): string | undefined {
  if (kind === undefined && Object.hasOwn(predefined, name)) return predefined[name];
  return Object.hasOwn(environment, name) ? environment[name] : undefined;
}
