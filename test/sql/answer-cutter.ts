/** A wire between a client and a server that loses an answer: what was asked is done, and the connection is cut. */
import net from "node:net";

export interface AnswerCutter {
  readonly port: number;
  /** The next bytes of the server, on any connection, are lost with it. */
  cutNext(): void;
  close(): void;
}

export async function startAnswerCutter(serverPort: number): Promise<AnswerCutter> {
  let isCutting = false;
  const sockets = new Set<net.Socket>();
  const listener = net.createServer((client) => {
    const server = net.connect(serverPort, "127.0.0.1");
    const end = () => {
      client.destroy();
      server.destroy();
    };
    for (const socket of [client, server]) {
      sockets.add(socket);
      socket.on("error", end);
      socket.on("close", end);
    }
    client.on("data", (bytes) => server.write(bytes));
    server.on("data", (bytes) => {
      if (!isCutting) return client.write(bytes);
      isCutting = false;
      end();
    });
  });
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  return {
    port: (listener.address() as net.AddressInfo).port,
    cutNext() {
      isCutting = true;
    },
    close() {
      listener.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
