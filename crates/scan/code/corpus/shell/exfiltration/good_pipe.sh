#!/bin/bash
set -eu
tar cz ./dist | curl -X POST --data-binary @- https://artifacts.example/u
