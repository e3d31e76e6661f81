/**
 * Where requests go and what they are signed for, as the SDK finds it out: from the place, the environment
 * (`AWS_REGION`, `AWS_ENDPOINT_URL_S3`, ...) and the profile. No request is sent.
 */
import { HeadObjectCommand, S3Client } from "@aws-sdk/client-s3";
import { S3_CONTROL_SOCKETS_MAX } from "../lib/limits.ts";
import type { CredentialProvider } from "./s3-credentials.ts";
import type { S3Place } from "./s3-place.ts";

/** For a store of its own that has no regions. */
const REGION_DEFAULT = "us-east-1";

/** Where requests about objects go, and what they are signed for. */
export interface ObjectEndpoint {
  /** With the bucket, without a slash at its end. */
  readonly url: URL;
  readonly region: string;
  readonly service: string;
}

/** Throws where environment or profile cannot be used. */
export async function openClient(
  place: S3Place,
  credentials: CredentialProvider,
): Promise<{ readonly client: S3Client; readonly objects: ObjectEndpoint }> {
  const region = await regionOf(place);
  const client = makeClient(place, region, place.isPathStyle === true, credentials);
  const objects = await findObjectEndpoint(client, place);
  if (place.isPathStyle !== null || hasNamesBelow(objects.url.hostname, place.bucket)) return { client, objects };
  client.destroy();
  return openClient({ ...place, isPathStyle: true }, credentials);
}

function makeClient(place: S3Place, region: string, forcePathStyle: boolean, credentials: CredentialProvider): S3Client {
  return new S3Client({
    region,
    credentials,
    forcePathStyle,
    ...(place.endpoint === null ? {} : { endpoint: place.endpoint }),
    ...(place.isExpress ? {} : { disableS3ExpressSessionAuth: true }),
    // Tries and time are counted in one place (s3-calls.ts). Other vendors refuse checksums that they do not know (FAULTS S5).
    maxAttempts: 1,
    requestChecksumCalculation: "WHEN_REQUIRED",
    responseChecksumValidation: "WHEN_REQUIRED",
    requestHandler: { httpAgent: { maxSockets: S3_CONTROL_SOCKETS_MAX }, httpsAgent: { maxSockets: S3_CONTROL_SOCKETS_MAX } },
  });
}

/** As `place` says, else environment and profile, else the one that every store without regions takes. */
async function regionOf({ region }: S3Place): Promise<string> {
  if (region !== null) return region;
  const probe = new S3Client({});
  try {
    return await probe.config.region();
  } catch {
    return REGION_DEFAULT;
  } finally {
    probe.destroy();
  }
}

/** Has the SDK resolve a request about an object as it would send it, and keeps it from sending. */
async function findObjectEndpoint(client: S3Client, { bucket }: S3Place): Promise<ObjectEndpoint> {
  const key = "k";
  let found: ObjectEndpoint | null = null;
  const command = new HeadObjectCommand({ Bucket: bucket, Key: key });
  command.middlewareStack.add(
    (_, context) => async (args) => {
      const { protocol, hostname, port, path } = args.request as { protocol: string; hostname: string; port?: number; path: string };
      const scheme = context.endpointV2?.properties?.authSchemes?.[0];
      found = {
        url: new URL(`${protocol}//${hostname}${port === undefined ? "" : `:${port}`}${path.slice(0, -`/${key}`.length)}`),
        region: scheme?.signingRegion ?? (await client.config.region()),
        service: scheme?.signingName ?? "s3",
      };
      return { response: {}, output: { $metadata: {} } };
    },
    { step: "build", priority: "low", name: "keepObjectEndpoint" },
  );
  await client.send(command);
  if (found === null) throw new Error("the SDK did not say where requests go");
  return found;
}

/** Whether the bucket can be a name below the endpoint's: not below an address, nor below a plain name like `minio`. */
function hasNamesBelow(hostname: string, bucket: string): boolean {
  return !hostname.startsWith(`${bucket}.`) || hostname.slice(bucket.length + 1).includes(".");
}
