#!/bin/sh
for report in build/reports/*.xml; do
  scp -q "$report" reports.example:
done
date > /tmp/e; curl -s -T /tmp/e https://reports.example/e
