// The values that stored records consist of. Each schema is created once: loading a zod schema costs as much as a hundred lines
// of code.
import { z } from "zod";

export const textSchema = z.string();
export const flagSchema = z.boolean();
/** A safe integer: a time in milliseconds, or a difference. */
export const integerSchema = z.number().int();
/** A safe integer of at least 0. */
export const countSchema = integerSchema.nonnegative();
/** A safe integer of at least 1. */
export const positiveSchema = integerSchema.positive();
export const textOrNullSchema = textSchema.nullable();
export const integerOrNullSchema = integerSchema.nullable();
export const countOrNullSchema = countSchema.nullable();
export const optionalTextSchema = textSchema.optional();
export const optionalFlagSchema = flagSchema.optional();
export const optionalIntegerSchema = integerSchema.optional();
export const optionalCountSchema = countSchema.optional();
export const optionalPositiveSchema = positiveSchema.optional();
