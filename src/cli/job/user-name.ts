import { userInfo } from "node:os";

/** Who types: the name of the operating system's user, kept with what they decide. */
export function userName(): string {
  try {
    return userInfo().username;
  } catch {
    // A container may run under a user id without a name.
    return "command line";
  }
}
