#!/bin/sh
# A change that may matter to durability leads to one audit, by zaudit-soon.timer. Snapshots, scrubs and the rest lead to none.
# Installed as history_event-zaudit.sh, config_sync-zaudit.sh and pool_import-zaudit.sh in /etc/zfs/zed.d (root:root, 0755).
# (man 8 zed; what a history event says: module/zfs/spa_history.c, dsl_prop.c of OpenZFS)
if [ "$ZEVENT_SUBCLASS" = history_event ]; then
    case "$ZEVENT_HISTORY_INTERNAL_NAME" in
        rename | "finish receiving") ;;
        set | inherit)
            case "${ZEVENT_HISTORY_INTERNAL_STR%%=*}" in
                sync | logbias | readonly | checksum | recordsize | redundant_metadata | copies | failmode | autotrim) ;;
                *) exit 0 ;;
            esac
            ;;
        *) exit 0 ;;
    esac
fi
exec systemctl start --no-block zaudit-soon.timer
