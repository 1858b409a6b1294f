import {
  anyRule,
  type Clock,
  clockRule,
  type Door,
  functionRule,
  listRule,
  optionsOf,
  systemClock,
  textRule,
} from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import { checkedPlace, type RedisPlace, type RedisPlaceOptions, redisPlaceRules } from "../redis/index.ts";
import { checkWhole, DEFAULT_DEAD_LETTERS_KEPT, DEFAULT_GRACE_MS, redactKnown } from "./checks.ts";
import { createSigner, type Signer, type SigningKey, signingKeyRule } from "./signature.ts";

/** Where Redis is, one of `url`, `client` and `cluster`, which may be that of the stores or another; and how it is used. */
export interface BullmqQueuesOptions extends RedisPlaceOptions {
  /** What all keys begin with, after a brace; any text without braces, `"troupe:queue:"` by default. */
  readonly prefix?: string | undefined;
  /** How long adding, cancelling or counting may take, with all attempts, in milliseconds. Default 5,000. */
  readonly timeoutMs?: number | undefined;
  /**
   * With which jobs are signed (by the first) and believed (by any). With them a job that somebody else wrote to Redis is
   * refused. All processes need the same. Default: jobs are not signed, and whoever can write to Redis can add some.
   */
  readonly secrets?: readonly SigningKey[] | undefined;
  /**
   * How long a worker that is not heard of is still believed to run its jobs, in milliseconds: 15,000 by default. A Redis that
   * is away for longer makes running jobs run twice.
   */
  readonly lockMs?: number | undefined;
  /**
   * How often dead workers, and jobs that nobody was told of, are looked for, in milliseconds. Default 5,000. A death is found
   * within `lockMs` and two of these.
   */
  readonly deathCheckMs?: number | undefined;
  /** How often running jobs look whether they were cancelled, in milliseconds. Default 250. */
  readonly cancelCheckMs?: number | undefined;
  /** How long a processor may go on after its signal was aborted, in milliseconds. Default 5,000. */
  readonly graceMs?: number | undefined;
  /** The newest so many are kept of each queue, for a week. Default 1,000. */
  readonly deadLettersKept?: number | undefined;
  /** Takes secrets out of what processors throw. Default: known shapes, and what the environment names a secret. */
  readonly redact?: ((text: string) => string) | undefined;
  /** For time-outs of jobs. Default: the system's. */
  readonly clock?: Clock | undefined;
}

export interface CheckedOptions {
  readonly place: RedisPlace;
  readonly prefix: string;
  readonly timeoutMs: number;
  readonly signer: Signer | undefined;
  readonly lockMs: number;
  readonly deathCheckMs: number;
  readonly cancelCheckMs: number;
  readonly graceMs: number;
  readonly deadLettersKept: number;
  readonly redact: (text: string) => string;
  readonly clock: Clock;
}

const LONGEST_MS = 2 ** 31 - 1;

/** Numbers are looked at where their defaults are known. */
const bullmqDoor: Door<BullmqQueuesOptions> = {
  rules: {
    ...redisPlaceRules,
    prefix: textRule,
    timeoutMs: anyRule,
    secrets: listRule("a list of keys { id, secret }", signingKeyRule),
    lockMs: anyRule,
    deathCheckMs: anyRule,
    cancelCheckMs: anyRule,
    graceMs: anyRule,
    deadLettersKept: anyRule,
    redact: functionRule,
    clock: clockRule,
  },
  instead: { connection: "client", redis: "client", nodes: "cluster: { nodes }" },
};

/** Throws `InvalidInputError` for what cannot work, in words that do not show what a URL or a secret holds. */
export function checkedOptions(given: BullmqQueuesOptions): CheckedOptions {
  const options = optionsOf<BullmqQueuesOptions>(given, "bullmqQueues()", bullmqDoor);
  const { prefix = "troupe:queue:", secrets, clock = systemClock } = options;
  const place = checkedPlace("bullmqQueues", options);
  if (/[{}]/.test(prefix)) {
    throw new InvalidInputError(`prefix is ${JSON.stringify(prefix)}; it takes any text without braces`);
  }
  return {
    place,
    prefix,
    signer: secrets && createSigner(secrets),
    clock,
    redact: options.redact ?? redactKnown(),
    timeoutMs: whole("timeoutMs", options.timeoutMs, 5_000, 1),
    lockMs: whole("lockMs", options.lockMs, 15_000, 100),
    deathCheckMs: whole("deathCheckMs", options.deathCheckMs, 5_000, 50),
    cancelCheckMs: whole("cancelCheckMs", options.cancelCheckMs, 250, 10),
    graceMs: whole("graceMs", options.graceMs, DEFAULT_GRACE_MS, 0),
    deadLettersKept: whole("deadLettersKept", options.deadLettersKept, DEFAULT_DEAD_LETTERS_KEPT, 1),
  };
}

function whole(name: string, given: number | undefined, byDefault: number, least: number): number {
  const value = given ?? byDefault;
  checkWhole(name, value, least, LONGEST_MS);
  return value;
}
