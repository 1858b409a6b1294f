import { InvalidInputError } from "../../errors/index.ts";
import type { SigningKey } from "../../queues/bullmq.ts";

export const secretsVariable = "TROUPE_QUEUE_SECRETS";

/** As queues take them; of shorter secrets they say so without the variable's name. */
const shortest = 16;

/**
 * The keys with which jobs are signed, `id:secret` with commas between them, the first one signs; undefined where there are
 * none. Throws `InvalidInputError` in words that show no secret.
 */
export function queueSecrets(environment: Readonly<Record<string, string | undefined>>): SigningKey[] | undefined {
  const text = environment[secretsVariable]?.trim() ?? "";
  if (text === "") return undefined;
  return text.split(",").map((part, index) => {
    const [, id, secret] = /^([\w.@-]{1,128}):(.+)$/.exec(part.trim()) ?? [];
    if (id === undefined || secret === undefined) throw fault(index, "is not of the form ID:SECRET");
    if (secret.length < shortest) throw fault(index, `has a secret of less than ${shortest} characters`);
    return { id, secret };
  });
}

function fault(index: number, what: string): InvalidInputError {
  return new InvalidInputError(
    `${secretsVariable}: key ${index + 1} ${what}; it takes ID:SECRET, several with commas between them, for instance from \`openssl rand -hex 32\``,
  );
}
