#!/bin/bash
set -eu
TOKEN=$(gcloud auth print-access-token)
echo "$TOKEN"
