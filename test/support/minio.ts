/** Real MinIO for tests. Without one they are skipped and the reason is printed, except where `CI` is set: there it is a failure. */
import { afterAll, beforeAll, describe, test } from "bun:test";
import { isMinioThere, MINIO_CREDENTIALS, MINIO_MISSING, type MinioServer, startMinio } from "../../scripts/minio.ts";

/**
 * As `describe`, for tests of a MinIO that is started before the first of them and ended behind the last. This process
 * gets its credentials meanwhile, and nothing of the person who runs the tests.
 */
export function describeOnMinio(name: string, define: (server: () => MinioServer) => void): void {
  if (!isMinioThere() && process.env.CI !== undefined) {
    test(`${name}: a MinIO is there`, () => {
      throw new Error(MINIO_MISSING);
    });
    return;
  }
  if (!isMinioThere()) console.log(`skipped: ${name}: ${MINIO_MISSING}`);
  describe.skipIf(!isMinioThere())(name, () => {
    let server: MinioServer | null = null;
    let restore = () => {};
    beforeAll(async () => {
      server = await startMinio();
      restore = setEnvironment(server.environment);
    }, 90_000);
    afterAll(async () => {
      restore();
      await server?.stop();
    }, 30_000);
    define(() => {
      if (server === null) throw new Error("MinIO runs during tests only");
      return server;
    });
  });
}

/** Credentials and region that a test double takes; returns what puts the environment back. */
export function useTestCredentials(): () => void {
  return setEnvironment({
    AWS_ACCESS_KEY_ID: MINIO_CREDENTIALS.accessKeyId,
    AWS_SECRET_ACCESS_KEY: MINIO_CREDENTIALS.secretAccessKey,
    AWS_REGION: "us-east-1",
    AWS_EC2_METADATA_DISABLED: "true",
    AWS_CONFIG_FILE: "/nonexistent/config",
    AWS_SHARED_CREDENTIALS_FILE: "/nonexistent/credentials",
  });
}

function setEnvironment(variables: Readonly<Record<string, string>>): () => void {
  const before = Object.entries(process.env).filter(([name]) => name.startsWith("AWS_"));
  for (const [name] of before) delete process.env[name];
  Object.assign(process.env, variables);
  return () => {
    for (const name of Object.keys(variables)) delete process.env[name];
    for (const [name, value] of before) if (value !== undefined) process.env[name] = value;
  };
}
