export {
  checkUpgrade,
  type CheckUpgradeOptions,
  type OpenTurnCheck,
  type UpgradeDifference,
  type UpgradeReport,
} from "./check-upgrade.ts";
export { type ToolStub, withModel, type WithModelOptions, withTools } from "../agents/index.ts";
export {
  type Estimate,
  estimate,
  type EstimateOptions,
  type OtherTurns,
  type SuggestedLimit,
  type SupposedModel,
  type TurnFigures,
  type WhatIf,
} from "./estimate.ts";
export type { Distribution, Quantile, Share } from "./distribution.ts";
export { fork, type Fork, type ForkEdit, type ForkOptions, type OriginTurn } from "./fork.ts";
export type { SimulatedCall, SimulatedTool } from "../actors/index.ts";
export type { ForkPoint } from "../runtime/index.ts";
export { recordedModel, type RecordedModelOptions } from "./recorded-model.ts";
export { modelRecordingSchema } from "./model-recording.ts";
export type { RecordingSource, StoredRecording } from "./recording.ts";
export {
  replay,
  type ReplayComparison,
  type ReplayDivergence,
  type ReplayOptions,
  type ReplayResult,
} from "./replay.ts";
export type { DivergedPart, NotCompared } from "./replay-agent.ts";
export { casesFrom, type CasesFilter, type StoredCase } from "./cases-from.ts";
export { type EvalCase, evalCasesSchema, readCases, type ReadCasesOptions } from "./datasets.ts";
export { judge, type JudgedCriterion, type JudgeOptions, type Verdict } from "./judge.ts";
export { type CaseResult, type CaseToolCall, runCase, type RunCaseOptions } from "./run-case.ts";
export type { StoredTree } from "../stores/index.ts";
export { createFakeClock, type FakeClock } from "./fake-clock.ts";
export {
  type ModelScript,
  type ScriptedAnswer,
  type ScriptedCall,
  type ScriptedModel,
  scriptedModel,
  type ScriptedModelOptions,
  type ScriptedReply,
  type ScriptedToolCall,
} from "./scripted-model.ts";
export {
  simulate,
  type SimulatedRun,
  type SimulatedRunCall,
  type SimulateOptions,
  type SimulationReport,
} from "./simulate.ts";
export type { SimulatedEffect } from "./simulation/log.ts";
export type { SimulatedSurroundings, SimulationCase } from "./simulation/play-simulation.ts";
export type {
  SimulatedAct,
  SimulatedAnswer,
  SimulatedDeath,
  SimulatedDecision,
  SimulatedProgram,
  SimulatedProgramCall,
  SimulatedTurn,
} from "./simulation/program.ts";
export {
  type SimulatedConversation,
  simulateUser,
  type SimulateUserOptions,
  type TranscriptEntry,
} from "./simulate-user.ts";
