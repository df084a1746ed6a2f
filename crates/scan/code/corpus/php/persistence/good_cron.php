<?php
file_put_contents("storage/schedule.txt", "daily");
