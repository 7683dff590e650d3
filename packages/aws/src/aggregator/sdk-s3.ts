/** The part of the AWS SDK that writes archives. Naming it lets the bundler drop the rest. */

export { PutObjectCommand, S3Client } from "@aws-sdk/client-s3";
