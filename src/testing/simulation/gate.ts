const never = Promise.withResolvers<never>().promise;

/**
 * The world as one process reaches it: once the process has died, its calls never return and its assignments are dropped, so
 * that code which JavaScript cannot stop changes nothing any more. Methods run on the object itself, and may use private fields.
 */
export function gated<World>(world: World, isOver: () => boolean): World {
  const gates = new WeakMap<object, object>();
  const through = (value: unknown): unknown => {
    if (typeof value !== "object" || value === null || value instanceof Promise) return value;
    const known = gates.get(value);
    if (known) return known;
    const gate = new Proxy(value, {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name, target);
        if (isFixed(target, name)) return member;
        if (typeof member !== "function" || name === "constructor") return through(member);
        return (...given: unknown[]): unknown => (isOver() ? never : Reflect.apply(member, target, given));
      },
      set: (target, name, next) => isOver() || Reflect.set(target, name, next, target),
      deleteProperty: (target, name) => isOver() || Reflect.deleteProperty(target, name),
    });
    gates.set(value, gate);
    return gate;
  };
  if (typeof world !== "function") return through(world) as World;
  return ((...given: unknown[]): unknown => (isOver() ? never : Reflect.apply(world, undefined, given))) as World;
}

/** A proxy must return the value of a property that can never change. */
function isFixed(target: object, name: string | symbol): boolean {
  const property = Reflect.getOwnPropertyDescriptor(target, name);
  return property?.configurable === false && property.writable === false;
}
