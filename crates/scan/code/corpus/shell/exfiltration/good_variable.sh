#!/bin/bash
set -eu
VERSION=$(cat VERSION)
sleep 1
curl -s "https://telemetry.example/?v=$VERSION"
