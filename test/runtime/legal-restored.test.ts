import { describeLegalTurns } from "../support/legal-turns.ts";

describeLegalTurns([{ variant: "memory, restored", part: 0.2 }]);
