// SPDX-License-Identifier: GPL-2.0
/*
 * While this module is loaded, every flush that OpenZFS sends to a disk comes back as "operation not supported", as from a
 * device or driver that refuses one. OpenZFS then sends that disk no other until it is opened anew (vdev_nowritecache:
 * zio_vdev_io_assess() of module/zfs/zio.c), and nothing that can be configured shows it.
 *
 * A kprobe on the completion of flushes (module/os/linux/zfs/vdev_disk.c); its first argument is the bio. x86-64.
 */
#include <linux/bio.h>
#include <linux/kprobes.h>
#include <linux/module.h>

static atomic_t refused = ATOMIC_INIT(0);

static int refuse(struct kprobe *probe, struct pt_regs *registers)
{
	struct bio *bio = (struct bio *)registers->di;

	bio->bi_status = BLK_STS_NOTSUPP;
	atomic_inc(&refused);
	return 0;
}

static struct kprobe probe = {
	.symbol_name = "vdev_disk_io_flush_completion",
	.pre_handler = refuse,
};

static int __init begin(void)
{
	return register_kprobe(&probe);
}

static void __exit end(void)
{
	unregister_kprobe(&probe);
	pr_info("refuse_flush: %d flushes refused\n", atomic_read(&refused));
}

module_init(begin);
module_exit(end);
MODULE_DESCRIPTION("Refuses the flushes of OpenZFS, for the lab of zaudit");
MODULE_LICENSE("GPL");
