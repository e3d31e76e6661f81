/** The one list of the routes of the admin listener. A route that is not here is neither served nor described. */
import { activityRoute } from "./activity-routes.ts";
import type { AdminContext } from "./admin-context.ts";
import type { AdminRoute } from "./admin-route.ts";
import { clusterRoute, nodesRoute } from "./cluster-routes.ts";
import { healthRoute, readyRoute } from "./health-routes.ts";
import { streamRoute } from "./stream-routes.ts";

export function adminRoutes({ source }: AdminContext): readonly AdminRoute[] {
  return [healthRoute(), readyRoute(source), clusterRoute(source), nodesRoute(source), streamRoute(source), activityRoute(source)];
}
