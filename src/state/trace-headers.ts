import { z } from "zod";
import type { TraceHeaders } from "../base/index.ts";

/** W3C Trace Context. Whoever gets it takes it as it is: it says under which span something was asked for. */
export const traceHeadersSchema = z.object({
  traceparent: z
    .string()
    .regex(/^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/, "is not of the form 00-<32 hex>-<16 hex>-<2 hex>"),
  tracestate: z
    .string()
    .regex(/^[\x20-\x7e]{0,512}$/, "takes at most 512 printable ASCII characters")
    .optional(),
}) satisfies z.ZodType<TraceHeaders>;
