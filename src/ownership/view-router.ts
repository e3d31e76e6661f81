/**
 * Routes by the metadata view: to the owner that it names, here where nobody owns the stream (it is
 * acquired then) or where the name is unknown (it is looked up again then).
 */
import type { RegistrationName } from "../lib/registration.ts";
import type { View } from "../metadata/view.ts";
import type { ListenerKind, Route, Router } from "./router.ts";

const HERE: Route = { kind: "here" };
const RECOVERY_RETRY_SECONDS = 1;

export class ViewRouter implements Router {
  constructor(
    private readonly view: View,
    private readonly nodeId: number,
    /** Whether streams of this registration are served here. */
    private readonly isOwn: (registration: RegistrationName) => boolean,
    /** A stream in use here needs no look at the view. */
    private readonly isInUse: (name: string) => boolean,
  ) {}

  route(name: string, listener: ListenerKind): Route {
    if (this.isInUse(name)) return HERE;
    const entry = this.view.streamByName(name);
    const ownership = entry === null ? null : this.view.ownerOf(entry);
    if (ownership === null || this.isOwn(ownership.owner.name)) return HERE;
    // Another life of this very node is over, or not begun: a redirect would lead back here.
    if (ownership.recovering || ownership.owner.name.nodeId === this.nodeId) {
      return { kind: "unavailable", retryAfterSeconds: RECOVERY_RETRY_SECONDS, reason: `stream ${name} is in recovery` };
    }
    const address = listener === "pico" ? ownership.owner.addresses.pico : ownership.owner.addresses.durableStreams;
    return address === null ? HERE : { kind: "redirect", address };
  }
}
