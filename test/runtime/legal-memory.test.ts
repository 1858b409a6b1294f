import { describeLegalTurns } from "../support/legal-turns.ts";

describeLegalTurns([{ variant: "memory", part: 0.65 }]);
