/** Named imports of the AWS SDK for tagged resources, so that the bundler drops the rest. */

export {
  GetResourcesCommand,
  ResourceGroupsTaggingAPIClient,
} from "@aws-sdk/client-resource-groups-tagging-api";
