export {
  hashOfArguments,
  artifactOf,
  type CallResult,
  endsTurn,
  errorResult,
  saveArtifacts,
  settleCall,
  settleEnded,
  unknownResult,
} from "./tool-calls.ts";
export { type EffectOwner, Effects } from "./effect.ts";
export { storedErrorOf } from "./stored-error.ts";
export type {
  BackgroundChild,
  BackgroundChildren,
  FactParts,
  Host,
  Proposed,
  CallQueue,
  ShownAnswer,
  SpawnRequest,
  TurnMemory,
  Viewers,
  Withdrawal,
} from "./host.ts";
export {
  type AttemptEnd,
  type AttemptDependencies,
  endOfError,
  endOfOutput,
  executeTool,
  isOnce,
  reconcileCall,
  attemptKeyOf,
} from "./run-tool.ts";
export { notRun } from "./forked-calls.ts";
export {
  definitionInFork,
  isRunHere,
  type RecordedCall,
  type SimulatedCall,
  type SimulatedTool,
  simulateTools,
  useModelInFork,
} from "./fork-rule.ts";
export { hostedInStubbed, isStubbed } from "./stub-rule.ts";
export { runAgentOf, percentOfWindow } from "./run-context.ts";
export { reportIdOf, reportMessage, waitTimerId } from "./background-calls.ts";
export { notSpawned } from "./child-rules.ts";
export { CacheWatch } from "./cache-watch.ts";
export { isTooLate } from "./take-inputs.ts";
export { requestKeyOf, resolveInstructions } from "./think.ts";
export { modelOfRequest } from "./choose-model.ts";
export { gateCall } from "./gate.ts";
export { guardedResult, holdsAnswers } from "./guards.ts";
export { answerWithResult } from "./answer-with-result.ts";
export { checkOutput } from "./check-output.ts";
export { assembleRequest } from "./prompt.ts";
export { repeatCompaction, repeatHook } from "./repeat.ts";
export {
  type LiveAgentActor,
  liveAgentMachine,
  liveToolCallMachine,
  liveTurnMachine,
  startWithEffects,
} from "./provide.ts";
