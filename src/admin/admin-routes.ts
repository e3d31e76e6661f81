/** The one list of the routes of the admin listener. A route that is not here is neither served nor described. */
import { activityRoute } from "./activity-routes.ts";
import type { AdminContext } from "./admin-context.ts";
import type { AdminRoute } from "./admin-route.ts";
import { clusterRoute, nodesRoute } from "./cluster-routes.ts";
import { documentRoute } from "./document-routes.ts";
import { gcRoute, holdRemovalRoute } from "./gc-routes.ts";
import { healthRoute, readyRoute } from "./health-routes.ts";
import { metricsRoute } from "./metrics-routes.ts";
import { scrubRoute, startScrubRoute } from "./scrub-routes.ts";
import { streamRoute } from "./stream-routes.ts";

export function adminRoutes({ source }: AdminContext): readonly AdminRoute[] {
  const routes: readonly AdminRoute[] = [
    healthRoute(),
    readyRoute(source),
    clusterRoute(source),
    nodesRoute(source),
    streamRoute(source),
    scrubRoute(source),
    startScrubRoute(source),
    gcRoute(source),
    holdRemovalRoute(source),
    activityRoute(source),
    metricsRoute(source),
    documentRoute(
      () => routes,
      () => source.durableStreamsUrl(),
    ),
  ];
  return routes;
}
