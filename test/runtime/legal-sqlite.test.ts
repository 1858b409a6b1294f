import { describeLegalTurns } from "../support/legal-turns.ts";

describeLegalTurns([
  { variant: "sqlite", part: 0.1 },
  { variant: "sqlite, restored", part: 0.05 },
]);
