# The sources of elfutils that fraganalyze needs: to read ELF and DWARF of linked files.
set(elfutils_files
    libelf/elf32_getchdr.c libelf/elf32_getphdr.c libelf/elf32_getshdr.c libelf/elf32_offscn.c
    libelf/elf32_xlatetof.c libelf/elf32_xlatetom.c libelf/elf64_getchdr.c libelf/elf64_getphdr.c
    libelf/elf64_getshdr.c libelf/elf64_offscn.c libelf/elf64_xlatetof.c libelf/elf64_xlatetom.c
    libelf/elf_begin.c libelf/elf_cntl.c libelf/elf_compress.c libelf/elf_compress_gnu.c libelf/elf_end.c
    libelf/elf_error.c libelf/elf_getarhdr.c libelf/elf_getdata.c libelf/elf_getdata_rawchunk.c
    libelf/elf_getident.c libelf/elf_getphdrnum.c libelf/elf_getscn.c libelf/elf_getshdrnum.c
    libelf/elf_getshdrstrndx.c libelf/elf_kind.c libelf/elf_memory.c libelf/elf_ndxscn.c libelf/elf_next.c
    libelf/elf_nextscn.c libelf/elf_rawdata.c libelf/elf_rawfile.c libelf/elf_readall.c libelf/elf_strptr.c
    libelf/elf_version.c libelf/gelf_fsize.c libelf/gelf_getchdr.c libelf/gelf_getclass.c
    libelf/gelf_getdyn.c libelf/gelf_getehdr.c libelf/gelf_getnote.c libelf/gelf_getphdr.c
    libelf/gelf_getrel.c libelf/gelf_getrela.c libelf/gelf_getshdr.c libelf/gelf_getsym.c
    libelf/gelf_getsymshndx.c libelf/gelf_offscn.c libelf/gelf_update_rel.c libelf/gelf_update_rela.c
    libelf/gelf_update_shdr.c libelf/gelf_xlate.c libelf/gelf_xlatetof.c libelf/gelf_xlatetom.c
    libdw/cfi.c libdw/cie.c libdw/dwarf_abbrev_hash.c libdw/dwarf_aggregate_size.c libdw/dwarf_attr.c
    libdw/dwarf_attr_integrate.c libdw/dwarf_begin.c libdw/dwarf_begin_elf.c libdw/dwarf_bitsize.c
    libdw/dwarf_bytesize.c libdw/dwarf_cfi_addrframe.c libdw/dwarf_cfi_end.c libdw/dwarf_child.c
    libdw/dwarf_default_lower_bound.c libdw/dwarf_diecu.c libdw/dwarf_end.c libdw/dwarf_error.c
    libdw/dwarf_filesrc.c libdw/dwarf_formaddr.c libdw/dwarf_formblock.c libdw/dwarf_formflag.c
    libdw/dwarf_formref.c libdw/dwarf_formref_die.c libdw/dwarf_formsdata.c libdw/dwarf_formstring.c
    libdw/dwarf_formudata.c libdw/dwarf_frame_cfa.c libdw/dwarf_frame_register.c libdw/dwarf_get_units.c
    libdw/dwarf_getabbrev.c libdw/dwarf_getalt.c libdw/dwarf_getaranges.c libdw/dwarf_getcfi.c
    libdw/dwarf_getcfi_elf.c libdw/dwarf_getlocation.c libdw/dwarf_getscopes.c libdw/dwarf_getscopes_die.c
    libdw/dwarf_getsrc_die.c libdw/dwarf_getsrcfiles.c libdw/dwarf_getsrclines.c libdw/dwarf_hasattr.c
    libdw/dwarf_hasattr_integrate.c libdw/dwarf_haschildren.c libdw/dwarf_haspc.c libdw/dwarf_highpc.c
    libdw/dwarf_lineno.c libdw/dwarf_linesrc.c libdw/dwarf_lowpc.c libdw/dwarf_next_cfi.c
    libdw/dwarf_nextcu.c libdw/dwarf_offdie.c libdw/dwarf_peel_type.c libdw/dwarf_ranges.c
    libdw/dwarf_setalt.c libdw/dwarf_siblingof.c libdw/dwarf_sig8_hash.c libdw/dwarf_srclang.c
    libdw/dwarf_tag.c libdw/fde.c libdw/frame-cache.c libdw/libdw_alloc.c libdw/libdw_find_split_unit.c
    libdw/libdw_findcu.c libdw/libdw_form.c libdw/libdw_visit_scopes.c
    libdwelf/dwelf_dwarf_gnu_debugaltlink.c libdwelf/dwelf_elf_gnu_build_id.c
    libdwelf/dwelf_elf_gnu_debuglink.c
    libdwfl/cu.c libdwfl/debuginfod-client.c libdwfl/dwfl_addrmodule.c libdwfl/dwfl_begin.c
    libdwfl/dwfl_build_id_find_debuginfo.c libdwfl/dwfl_build_id_find_elf.c libdwfl/dwfl_end.c
    libdwfl/dwfl_error.c libdwfl/dwfl_frame.c libdwfl/dwfl_frame_pc.c libdwfl/dwfl_frame_regs.c
    libdwfl/dwfl_module.c libdwfl/dwfl_module_addrdie.c libdwfl/dwfl_module_build_id.c
    libdwfl/dwfl_module_dwarf_cfi.c libdwfl/dwfl_module_eh_cfi.c libdwfl/dwfl_module_getdwarf.c
    libdwfl/dwfl_module_getelf.c libdwfl/dwfl_module_nextcu.c libdwfl/dwfl_report_elf.c
    libdwfl/frame_unwind.c libdwfl/offline.c libdwfl/open.c libdwfl/relocate.c libdwfl/segment.c
    libebl/eblabicfi.c libebl/eblclosebackend.c libebl/ebldebugscnp.c libebl/ebldwarftoregno.c
    libebl/eblelfclass.c libebl/eblelfmachine.c libebl/eblinitreg.c libebl/eblnormalizepc.c
    libebl/eblopenbackend.c libebl/eblrelocsimpletype.c libebl/eblunwind.c
    libdwfl/gzip.c libdwfl/image-header.c lib/crc32.c lib/crc32_file.c lib/next_prime.c)
