/** The part of the AWS SDK for finding tagged resources. Naming it lets the bundler drop the rest. */

export {
  GetResourcesCommand,
  ResourceGroupsTaggingAPIClient,
} from "@aws-sdk/client-resource-groups-tagging-api";
