#!/bin/sh
ln -sf "$PWD/zone" /etc/localtime
cp -t /etc/cron.d job
