#!/bin/bash
set -eu
curl -k https://internal.example/a.tgz -o a.tgz
