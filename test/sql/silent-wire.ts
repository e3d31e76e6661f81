/** A wire between clients and a server on which a connection can die without a word: what is sent is lost, and nobody is told. */
import net from "node:net";

export interface SilentWire {
  readonly port: number;
  /** All connections of now are dead; later ones work. */
  silence(): void;
  close(): void;
}

export async function startSilentWire(serverPort: number): Promise<SilentWire> {
  let generation = 0;
  const sockets = new Set<net.Socket>();
  const listener = net.createServer((client) => {
    const born = generation;
    const server = net.connect(serverPort, "127.0.0.1");
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      sockets.add(from);
      from.on("data", (bytes) => born === generation && to.write(bytes));
      from.on("error", () => to.destroy());
      from.on("close", () => to.destroy());
    }
  });
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  return {
    port: (listener.address() as net.AddressInfo).port,
    silence() {
      generation += 1;
    },
    close() {
      listener.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
