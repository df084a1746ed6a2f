#!/bin/bash
set -eu
curl --fail https://internal.example/a.tgz -o a.tgz
