import { accounts } from "./faults/accounts.ts";
import { budgets } from "./faults/budgets.ts";
import { children } from "./faults/children.ts";
import { f10 } from "./faults/f10.ts";
import { f11 } from "./faults/f11.ts";
import { f12 } from "./faults/f12.ts";
import { many } from "./faults/many.ts";
import { f13 } from "./faults/f13.ts";
import { f15 } from "./faults/f15.ts";
import { f17 } from "./faults/f17.ts";
import { f18 } from "./faults/f18.ts";
import { f19 } from "./faults/f19.ts";
import { f1 } from "./faults/f1.ts";
import { f2 } from "./faults/f2.ts";
import { f2queued } from "./faults/f2-queued.ts";
import { f3 } from "./faults/f3.ts";
import { f4 } from "./faults/f4.ts";
import { f20 } from "./faults/f20.ts";
import { f21 } from "./faults/f21.ts";
import { f22 } from "./faults/f22.ts";
import { f23 } from "./faults/f23.ts";
import { f27 } from "./faults/f27.ts";
import { f30 } from "./faults/f30.ts";
import { f31 } from "./faults/f31.ts";
import { f35 } from "./faults/f35.ts";
import { f36 } from "./faults/f36.ts";
import { job } from "./faults/job.ts";
import { nine } from "./faults/nine.ts";
import { f5, f5everysec } from "./faults/f5.ts";
import { f6 } from "./faults/f6.ts";
import { f7 } from "./faults/f7.ts";
import { f8 } from "./faults/f8.ts";
import { f9 } from "./faults/f9.ts";
import { restart } from "./faults/restart.ts";
import { serve } from "./faults/serve.ts";
import { serveWires } from "./faults/serve-wires.ts";
import { survivor } from "./faults/survivor.ts";
import { fight } from "./faults/fight.ts";
import type { ChaosScenario } from "./scenario.ts";

/** All scenarios by name, in the order of `all`. */
export const scenarios: readonly ChaosScenario[] = [
  f1,
  f2,
  f2queued,
  f3,
  f4,
  f5,
  f5everysec,
  f6,
  f7,
  f8,
  f9,
  budgets,
  f10,
  f11,
  f12,
  f13,
  f15,
  f17,
  f18,
  f19,
  f20,
  f21,
  f22,
  f23,
  f27,
  f30,
  f31,
  f35,
  f36,
  nine,
  children,
  accounts,
  many,
  fight,
  serve,
  ...serveWires,
  restart,
  survivor,
  job,
];
