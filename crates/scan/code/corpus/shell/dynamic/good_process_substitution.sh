#!/bin/bash
set -eu
source ./env.sh
