import { z } from "zod";
import { type DeepReadonly, optionalPositiveSchema, optionalTextSchema, textSchema } from "../base/index.ts";
import { jsonObjectSchema, jsonSchema } from "./json.ts";

/** A result that takes the place of a tool in a session, as stored. */
export const sessionStubSchema = z.object({
  tool: textSchema.min(1).meta({ description: "Name of the tool." }),
  agent: optionalTextSchema.meta({ description: "Name of the definition whose agents use the stub. Default: all." }),
  arguments: jsonObjectSchema
    .optional()
    .meta({ description: "Answers only calls with these arguments. Default: calls with any arguments." }),
  match: z.enum(["partial", "equal"]).optional().meta({
    description: "`partial`, the default: the call may have further arguments. `equal`: it may not.",
  }),
  output: jsonSchema.optional().meta({ description: "What the tool returns. Either `output` or `error`." }),
  error: optionalTextSchema.meta({ description: "The message of the error that the tool fails with." }),
  times: optionalPositiveSchema.meta({ description: "How many calls of an agent it answers. Default: all." }),
});

/** A result that takes the place of a tool in a session. Calls of a session with stubs never run a tool. */
export type SessionStub = DeepReadonly<z.infer<typeof sessionStubSchema>>;

/** The code of the error with which a call ends that no stub answers, and its turn with it. */
export const STUB_MISMATCH_CODE = "stub_mismatch";
