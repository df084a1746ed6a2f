#!/bin/bash
set -eu
CODE=$(echo ZWNobyBoaQ== | base64 -d)
eval "$(echo ZWNobyBoaQ== | base64 -d)"
