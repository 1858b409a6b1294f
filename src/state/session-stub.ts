import { z } from "zod";
import { type DeepReadonly, optionalPositiveSchema, optionalTextSchema, textSchema } from "../base/index.ts";
import { jsonObjectSchema, jsonSchema } from "./json.ts";

const fields = {
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
};

/** A result that takes the place of a tool in a session, as stored. */
export const sessionStubSchema = z.object(fields);

/** Maximum number of stubs of a session. */
export const MOST_STUBS = 200;
/** Maximum size of the stubs of a session as JSON, in characters. Each record of the session's agents contains them. */
export const STUBS_CHARACTERS = 200_000;

/** Stubs of a new session. */
export const newSessionStubsSchema = z
  .array(
    z
      .strictObject(fields)
      .refine(({ output, error }) => (output === undefined) !== (error === undefined), {
        message: "a stub has either an output or an error",
      })
      .refine(({ match, arguments: args }) => match === undefined || args !== undefined, {
        message: "match compares arguments, and the stub has none",
      })
      .meta({ id: "SessionStub", description: "A result that takes the place of a tool." }),
  )
  .min(1)
  .max(MOST_STUBS);

/** A result that takes the place of a tool in a session. Calls of a session with stubs never run a tool. */
export type SessionStub = DeepReadonly<z.infer<typeof sessionStubSchema>>;

/** The code of the error with which a call ends that no stub answers, and its turn with it. */
export const STUB_MISMATCH_CODE = "stub_mismatch";
