/**
 * While a run is under way, everything that would let the real world in throws: a server that reads the
 * real clock or draws real chance could not be replayed from its seed.
 */

type Restore = () => void;

export function forbidRealWorld(): Restore {
  const restores: Restore[] = [];
  const forbid = <T extends object>(owner: T, name: keyof T & string): void => {
    const original = owner[name];
    const refuse = (): never => {
      throw new Error(`${name} called inside a simulated run`);
    };
    owner[name] = refuse as T[keyof T & string];
    restores.push(() => {
      owner[name] = original;
    });
  };
  forbid(Date, "now");
  forbid(performance, "now");
  forbid(Math, "random");
  forbid(crypto, "getRandomValues");
  forbid(crypto, "randomUUID");
  forbid(globalThis, "setTimeout");
  forbid(globalThis, "setInterval");
  forbid(globalThis, "setImmediate");
  forbid(globalThis, "fetch");
  return () => {
    for (const restore of restores) restore();
  };
}
