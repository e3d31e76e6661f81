/**
 * Credentials from the standard chain: environment, profile, web identity, container and instance roles. Those with an
 * end are renewed five minutes before it, behind the back of whoever asks; old ones serve as long as they live.
 */
import { defaultProvider } from "@aws-sdk/credential-provider-node";

export type Credentials = Awaited<ReturnType<ReturnType<typeof defaultProvider>>>;
export type CredentialProvider = (options?: { readonly forceRefresh?: boolean }) => Promise<Credentials>;

export function standardCredentials(): CredentialProvider {
  return defaultProvider();
}
