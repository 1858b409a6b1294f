import { z } from "zod";

/** Any JSON value. What is journalled is JSON and nothing else (row S10). */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

export const jsonSchema: z.ZodType<Json> = z.json() as z.ZodType<Json>;
export const jsonObjectSchema = z.record(z.string(), jsonSchema);
export type JsonObject = { readonly [key: string]: Json };
