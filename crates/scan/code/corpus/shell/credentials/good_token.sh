#!/bin/bash
set -eu
gcloud config list
