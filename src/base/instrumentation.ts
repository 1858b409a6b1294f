import { InvalidInputError } from "../errors/index.ts";

/*
 * Fault points: locations in the code where crash tests inject a fault. Every layer can define them; tests and the chaos programs
 * arm them. An unarmed fault point costs one comparison.
 *
 * 1. Nothing happens at a fault point unless `armFaultPoints` or the environment armed it.
 * 2. An armed fault triggers once, at its k-th hit since it was armed.
 */

/** `kill` ends this process with SIGKILL, like a power cut; a function is called synchronously and may throw. */
export type FaultAction = "kill" | (() => void);

export interface Fault {
  /** Name of the fault point: lower-case words with dots and dashes. */
  readonly name: string;
  /** The hit at which it triggers, from 1. */
  readonly hit: number;
  /** Default "kill". */
  readonly action?: FaultAction;
}

interface ArmedFault {
  readonly fault: Fault;
  hits: number;
}

const specPattern = /^([a-z][a-z0-9.-]*):([1-9][0-9]{0,8})$/;

let armed: readonly ArmedFault[] = [];

/** A location at which a test may inject a fault. Its name states what has been done before it: "commit.acknowledged". */
export function faultPoint(name: string): void {
  if (armed.length > 0) strike(name);
}

function strike(name: string): void {
  for (const candidate of armed) {
    if (candidate.fault.name !== name) continue;
    candidate.hits += 1;
    if (candidate.hits !== candidate.fault.hit) continue;
    const { action = "kill" } = candidate.fault;
    if (action === "kill") process.kill(process.pid, "SIGKILL");
    else action();
  }
}

/**
 * Arms faults in addition to those already armed: as values, or as text `name:k`, several separated by commas. Returns a function
 * that disarms them.
 * @throws InvalidInputError for a text or value in another format.
 */
export function armFaultPoints(spec: string | readonly Fault[]): () => void {
  const faults = typeof spec === "string" ? spec.split(",").map(parseFault) : spec;
  for (const { name, hit } of faults) parseFault(`${name}:${hit}`);
  const added = faults.map((fault) => ({ fault, hits: 0 }));
  armed = [...armed, ...added];
  return () => {
    armed = armed.filter((candidate) => !added.includes(candidate));
  };
}

function parseFault(text: string): Fault {
  const match = specPattern.exec(text.trim());
  const [, name, hit] = match ?? [];
  if (name === undefined || hit === undefined) {
    throw new InvalidInputError(`fault "${text}" is not of the form name:k, such as "commit.acknowledged:3"`);
  }
  return { name, hit: Number(hit) };
}

const fromEnvironment = process.env["TROUPE_FAULT"];
if (fromEnvironment !== undefined && fromEnvironment !== "") armFaultPoints(fromEnvironment);

/** A span in the format in which it is sent between processes: the headers of W3C Trace Context. */
export interface TraceHeaders {
  /** `00-<32 hex>-<16 hex>-<2 hex>`. */
  readonly traceparent: string;
  /** Vendor-specific tracing data as defined by the W3C; `undefined` if there is none. */
  readonly tracestate?: string | undefined;
}

/** The port to a tracing system; the telemetry folder implements it. Its methods must not throw. */
export interface TraceCarrier {
  /** The span that is active in the calling code, if there is one. */
  active(): TraceHeaders | undefined;
  /** The span that this process created for a turn or a call, if it created one. */
  spanOf(rootAgentId: string, id: string): TraceHeaders | undefined;
  /** Runs code with this span as the parent of the spans it creates. */
  within<T>(headers: TraceHeaders, work: () => T): T;
}

let carriers: readonly TraceCarrier[] = [];

/** Adds a carrier; carriers added earlier take precedence. Returns a function that removes it. */
export function carryTraces(carrier: TraceCarrier): () => void {
  carriers = [...carriers, carrier];
  return () => {
    carriers = carriers.filter((one) => one !== carrier);
  };
}

/** The active span; `undefined` without a tracing system. */
export function activeTrace(): TraceHeaders | undefined {
  return firstOf((carrier) => carrier.active());
}

/** The span that this process created for the first of these ids that has one (a call, then its turn). */
export function traceOf(rootAgentId: string, ids: readonly string[]): TraceHeaders | undefined {
  for (const id of ids) {
    const found = firstOf((carrier) => carrier.spanOf(rootAgentId, id));
    if (found) return found;
  }
  return undefined;
}

/** Runs code under a span if there is one and a tracing system is registered. */
export function withinTrace<T>(headers: TraceHeaders | undefined, work: () => T): T {
  const [carrier] = carriers;
  return headers && carrier ? carrier.within(headers, work) : work();
}

function firstOf(ask: (carrier: TraceCarrier) => TraceHeaders | undefined): TraceHeaders | undefined {
  for (const carrier of carriers) {
    const found = ask(carrier);
    if (found) return found;
  }
  return undefined;
}
